"""NCCL's INFO lines: the network it chose, its adapters, GPUDirect RDMA, transports and the environment it was given."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+(?:\+cuda[\d.]+)?)")
USING_IB = re.compile(r"NET/IB : Using ([^\n]{1,4000})")
HCA = re.compile(r"\[\d{1,3}\]\s?([\w.-]{1,40}):\d{1,3}/(IB|RoCE|OPA)(/SHARP)?")
USING_SOCKET = re.compile(r"NET/Socket : Using ([^\n]{1,2000})")
INTERFACE = re.compile(r"(?:\[\d{1,3}\])?([A-Za-z][\w.-]{0,30}):")
OUT_OF_BAND = re.compile(
    r"OOB (?:\[\d{1,3}\])?([A-Za-z][\w.-]{0,30}):|Bootstrap : Using (?:\[\d{1,3}\])?([A-Za-z][\w.-]{0,30}):"
)
CHOSEN = re.compile(r"Using network ([^\n]{1,40})")
PROVIDER = re.compile(r"Selected [Pp]rovider is ([\w;-]{1,30})(?:, fabric is [\w-]{1,30})?(?: \(found (\d{1,4}) nics\))?")
GDR = re.compile(r"GPU Direct RDMA (Enabled|Disabled)(?: \([^)\n]{0,60}\))? for HCA \d{1,3} '([\w.-]{1,40})'")
VIA = re.compile(
    r"\bvia (P2P|SHM|NET|COLLNET|NVLS|direct shared memory)(?:/([\w-]{1,40}))?(?:\([\d-]{1,5}\))?((?:/[\w()-]{1,20}){0,4})"
)
ENVIRONMENT = re.compile(r"\b(NCCL_[A-Z0-9_]{2,40}) set by environment to ([^\n]{1,200}?)\.?\s*$", re.MULTILINE)
ASSIGNED = re.compile(r"(?:^|[\s;'\"{,])(NCCL_[A-Z0-9_]{2,40})['\"]?\s?[=:]\s?['\"]?([\w.,^:/=-]{1,100})")


def read_network(text: str) -> dict[str, Any]:
    """What the NCCL lines of a log say; empty where there are none."""
    if "NCCL" not in text and "NET/" not in text:
        return {}
    adapters: dict[str, str] = {}
    sharp = False
    for line in USING_IB.findall(text):
        for name, layer, with_sharp in HCA.findall(line):
            adapters[name] = layer
            sharp = sharp or bool(with_sharp)
    disabled = tuple(dict.fromkeys(name for state, name in GDR.findall(text) if state == "Disabled"))
    enabled = any(state == "Enabled" for state, _ in GDR.findall(text))
    transports = _transports(text)
    environment = dict(ASSIGNED.findall(text[:200_000])) | {name: value.strip() for name, value in ENVIRONMENT.findall(text)}
    socket = USING_SOCKET.search(text)
    interface = INTERFACE.search(socket.group(1)) if socket else None
    oob = OUT_OF_BAND.search(text)
    provider = PROVIDER.search(text)
    over_net = {name for name in transports if name.startswith("NET/")}
    gdr = None
    if disabled:
        gdr = False
    elif enabled or any("GDRDMA" in name for name in over_net):
        gdr = True
    elif any(name.startswith("NET/IB") for name in over_net):
        gdr = False
    layers = set(adapters.values())
    version = VERSION.search(text)
    facts = {
        "nccl_version": version.group(1) if version else None,
        "hca_names": tuple(adapters)[:256] or disabled or None,
        "hcas": disabled or len(adapters) or (int(provider.group(2)) if provider and provider.group(2) else None),
        "link_layer": layers.pop() if len(layers) == 1 else "mixed" if layers else None,
        "oob": next(one for one in oob.groups() if one) if oob else None,
        "interface": interface.group(1) if interface else None,
        "provider": provider.group(1) if provider else None,
        "gdr": gdr,
        "gdr_disabled": disabled or None,
        "sharp": True if sharp else None,
        "nvls": True if "NVLS multicast support is available" in text else None,
        "transports": transports or None,
        "environment": environment or None,
    }
    facts["network"] = _network(text, facts, over_net)
    return facts


def _transports(text: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for kind, name, rest in VIA.findall(text):
        kind = "SHM" if kind.startswith("direct") else kind
        if kind == "NET":
            counts[f"NET/{name}" + ("/GDRDMA" if "GDRDMA" in rest else "")] += 1
        else:
            counts[kind] += 1
    return dict(counts)


def _network(text: str, facts: dict[str, Any], over_net: set[str]) -> str | None:
    """The network in one word or two, by what was chosen, then by what was offered."""
    chosen = CHOSEN.search(text)
    word = chosen.group(1).strip().rstrip(".") if chosen else ""
    if not word and over_net:
        word = sorted(over_net)[0].split("/")[1]
    without = " without GDR" if facts["gdr"] is False else ""
    if word == "Socket" or (not word and facts["interface"] and not facts["link_layer"]):
        name = facts["interface"] or ""
        return "Socket (IPoIB)" if name.startswith("ib") else "Socket"
    if facts["provider"]:
        return {"efa": "EFA", "cxi": "Slingshot (CXI)"}.get(facts["provider"].split(";")[0], f"OFI ({facts['provider']})")
    if "Libfabric" in word or "OFI" in word or (not word and "NET/OFI" in text and "Initializing aws-ofi-nccl" in text):
        return "EFA" if "AWS" in word or "aws-ofi" in text else "OFI"
    if word.startswith("IB") or (not word and (facts["link_layer"] or facts["gdr_disabled"])):
        layer = facts["link_layer"]
        return ("RoCE" if layer == "RoCE" else "IB") + without
    if word:
        return word + without
    if "NET/IB : No device found" in text:
        return "Socket" if "NET/Socket" in text else "none"
    if facts["transports"]:
        return "NVLink/P2P" if set(facts["transports"]) <= {"P2P", "NVLS"} else "SHM" if "SHM" in facts["transports"] else None
    return None
