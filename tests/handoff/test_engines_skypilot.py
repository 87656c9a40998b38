"""SkyPilot tasks of the twelve scenarios, as far as SkyPilot goes without an account: read, optimized, rehearsed.

Runs where SkyPilot is installed (version and install in data/engines.csv). Prices come from this project's own tables, in a
home of its own. What cannot be had offline: a Kubernetes wish (it asks the cluster) and the dry run of a task that mounts
storage (it makes the buckets) or of clouds that ask the account for projects and images.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from unittest import mock

import pandas
import pytest
import yaml

from advisor import catalog
from advisor.handoff import skypilot
from tests.handoff.conftest import kits_of, plan_of
from tests.handoff.test_engines import files_of, write

pytestmark = pytest.mark.engines

#: Where SkyPilot needs an account or a cluster to say what there is: Kubernetes asks the cluster itself.
OFFLINE_CLOUDS = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "paperspace", "runpod", "vast")


def price_catalogs(folder: Path) -> None:
    """SkyPilot's price catalogs, made of this project's own instances and prices.

    SkyPilot downloads a catalog only where there is none, and takes one without a stored checksum for edited by hand.
    """
    rows: dict[str, list[dict]] = {cloud: [] for cloud in OFFLINE_CLOUDS}
    for one in catalog.instances():
        cloud = skypilot.CLOUDS.get(one.provider)
        if cloud not in rows or one.gpu not in skypilot.ACCELERATORS or not one.gpus or one.on_demand is None:
            continue
        name = skypilot.BY_MACHINE.get(one.instance_type) or skypilot.accelerator(one.gpu, cloud)
        per_card = "per GPU" in one.instance_type
        if name is None or (per_card and cloud not in skypilot.UNMOUNTED):
            continue
        for cards in (1, 2, 4, 8) if per_card else (one.gpus,):
            times = cards if per_card else 1
            rows[cloud].append(
                {
                    "InstanceType": f"{cards}x_{name}" if per_card else one.instance_type,
                    "AcceleratorName": name,
                    "AcceleratorCount": cards,
                    "vCPUs": one.vcpus or 8 * cards,
                    "MemoryGiB": one.ram.m_as("GiB") if one.ram else 64 * cards,
                    "GpuInfo": name,
                    "Price": times * one.on_demand.m_as("USD / h"),
                    "SpotPrice": times * one.spot.m_as("USD / h") if one.spot else None,
                    "Region": one.region if cloud in ("aws", "azure", "gcp", "nebius") else "somewhere",
                    "AvailabilityZone": f"{one.region}-a",
                    "Generation": "V2",
                }
            )
    for cloud, found in rows.items():
        table = pandas.DataFrame(found)
        if cloud not in ("aws", "gcp", "runpod"):
            table = table.drop(columns="AvailabilityZone")
        if cloud == "gcp":  # a machine and the cards in it are priced apart
            machine = table.assign(AcceleratorName=None, AcceleratorCount=None, GpuInfo=None, Price=0.0, SpotPrice=0.0)
            cards = table.assign(InstanceType=None, vCPUs=None, MemoryGiB=None)
            cards = cards.drop_duplicates(["AcceleratorName", "AcceleratorCount", "Region"])
            table = pandas.concat([machine, cards])
        (folder / cloud).mkdir(parents=True)
        table.to_csv(folder / cloud / "vms.csv", index=False)
        (folder / cloud / "images.csv").write_text("Tag,Region,OS,OSVersion,ImageId,CreationDate\n")
    (folder / "common").mkdir()
    names = pandas.DataFrame(
        [{"AcceleratorName": row["AcceleratorName"], "Clouds": str([cloud])} for cloud, found in rows.items() for row in found]
    )
    names.drop_duplicates().to_csv(folder / "common" / "accelerators.csv", index=False)


@pytest.fixture(scope="module")
def sky(tmp_path_factory):
    """SkyPilot in a home of its own, with this project's prices for catalogs."""
    if importlib.util.find_spec("sky") is None:
        pytest.skip("SkyPilot is not installed")
    home = tmp_path_factory.mktemp("sky")
    # read as it is imported
    places = {"HOME": str(home), "SKY_RUNTIME_DIR": str(home), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
    with mock.patch.dict(os.environ, places):
        import sky
        from sky.skylet import constants

        price_catalogs(home / ".sky" / "catalogs" / constants.CATALOG_SCHEMA_VERSION)
        yield sky


@pytest.fixture
def task(sky, scenario_name, tmp_path, monkeypatch):
    """The scenario's task as SkyPilot reads it."""
    write(tmp_path, files_of(scenario_name, "skypilot"))
    monkeypatch.chdir(tmp_path)
    return sky.Task.from_yaml(str(tmp_path / "skypilot.yaml"))


def test_skypilot_makes_a_task(task, scenario_name):
    asked = yaml.safe_load(kits_of(scenario_name)["skypilot"]["skypilot.yaml"])
    assert task.num_nodes == asked["num_nodes"]
    # a list is a sequence of wishes, a set would be "whichever is cheapest"
    assert isinstance(task.resources, list)
    wishes = [
        {
            "infra": one.infra.to_str(),
            "accelerators": "{}:{}".format(*next(iter(one.accelerators.items()))),
            "use_spot": one.use_spot,
        }
        for one in task.resources
    ]
    assert wishes == [{"infra": None, **choice} for choice in asked["resources"]["ordered"]]


def clouds_named(names) -> list:
    from sky.utils import registry

    return [registry.CLOUD_REGISTRY.from_str(name) for name in names]


def launched(sky, task, clouds):
    """What SkyPilot would launch with these clouds set up: the optimizer as `sky launch` and `sky jobs launch` call it."""
    from sky.optimizer import Optimizer
    from sky.utils import dag_utils

    with mock.patch("sky.check.get_cached_enabled_clouds_or_refresh", lambda *_, **__: clouds_named(clouds)):
        dag = dag_utils.convert_entrypoint_to_dag(task)
        Optimizer.optimize(dag, quiet=True)
    return dag.tasks[0].best_resources


def test_skypilot_would_launch_the_chosen_offer(sky, task, scenario_name):
    """The first wish that can be had without a Kubernetes cluster, at the price this project knows."""
    first = next(one for one in task.resources if str(one.cloud).lower() in (*OFFLINE_CLOUDS, "none"))
    best = launched(sky, task, OFFLINE_CLOUDS)
    assert best.accelerators == first.accelerators and best.use_spot == first.use_spot
    assert first.cloud is None or first.cloud.is_same_cloud(best.cloud)
    plan = plan_of(scenario_name)
    prices = [
        one.price_per_gpu_hour.m_as("USD / GPU / h") * plan.cluster.layout.gpus_per_node
        for one in plan.budget.alternatives
        if one.gpu == plan.cluster.gpu and skypilot.CLOUDS.get(one.provider) == str(best.cloud).lower()
    ]
    assert first.cloud is None or best.get_cost(3600) == pytest.approx(
        min(prices, key=lambda one: abs(one - best.get_cost(3600)))
    )


def test_skypilot_can_launch_every_wish(sky, task, scenario_name):
    """Each alternative is a machine of its cloud with all the task asks for: storage mounts, nodes, network, spot."""
    for wish in task.resources:
        if wish.cloud is not None and str(wish.cloud).lower() != "kubernetes":
            task.set_resources(wish)
            best = launched(sky, task, OFFLINE_CLOUDS)
            assert best.accelerators == wish.accelerators and best.use_spot == wish.use_spot


def test_skypilot_rehearses_the_launch(sky, task):
    """`sky launch --dryrun`, up to the cluster's configuration, where the first wish is a cloud that needs no account for it.

    Only RunPod is one: the others ask the account for its projects, images and networks (ImportError or a refused log-in
    without it), and a task that mounts storage makes its buckets first, in a dry run too.
    """
    from sky import execution

    if task.storage_mounts or str(task.resources[0].cloud) != "RunPod":
        pytest.skip("a dry run of this task needs an account")
    with (
        mock.patch("sky.check.get_cached_enabled_clouds_or_refresh", lambda *_, **__: clouds_named(OFFLINE_CLOUDS)),
        mock.patch("sky.backends.backend_utils.check_rsync_installed", lambda: None),
    ):
        assert execution.launch(task, cluster_name="run", dryrun=True, _disable_controller_check=True) == (None, None)


def test_skypilot_names_cards_as_we_do(sky):
    """Our names of cards against the tables that SkyPilot's catalogs are written with."""
    from sky.catalog import gcp_catalog
    from sky.catalog.data_fetchers import fetch_lambda_cloud

    with mock.patch.dict(
        sys.modules, dict.fromkeys(("runpod", "runpod.api", "runpod.api.graphql"), mock.Mock())
    ):  # its client is not needed to read the table
        from sky.catalog.data_fetchers import fetch_runpod

    for one in catalog.instances():
        cloud = skypilot.CLOUDS.get(one.provider)
        if cloud is None or one.gpu not in skypilot.ACCELERATORS:
            continue
        name = skypilot.BY_MACHINE.get(one.instance_type) or skypilot.accelerator(one.gpu, cloud)
        if cloud == "lambda" and one.instance_type.startswith("gpu_"):
            assert fetch_lambda_cloud.name_to_gpu(one.instance_type) == name
        elif cloud == "gcp" and one.instance_type in gcp_catalog._INSTANCE_TYPE_TO_ACC:
            assert gcp_catalog._INSTANCE_TYPE_TO_ACC[one.instance_type] == {name: one.gpus}
        elif cloud == "runpod" and one.gpu not in ("B300 SXM 288GB",):
            assert name in fetch_runpod.DEFAULT_GPU_INFO
