"""RDMA adapters and ports: ibstat, ibstatus, ibv_devinfo, ibdev2netdev, rdma link, mlxlink and show_gids.

The link layer decides what a port is: ibstatus prints "4X EDR" for 100 Gb/s Ethernet too, and "4X" are lanes, not adapters.
A rate printed for a port that is down is a placeholder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from advisor.evidence.parts import LineRate, cut_problem, integer, lines, number, problem, quantity
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report

#: PCI device numbers of NVIDIA (Mellanox) adapters, decimal as ibstat and ibv_devinfo print them (pci.ids, vendor 15b3).
ADAPTERS = {
    4099: "ConnectX-3", 4103: "ConnectX-3 Pro", 4113: "Connect-IB", 4115: "ConnectX-4", 4117: "ConnectX-4 Lx",
    4119: "ConnectX-5", 4121: "ConnectX-5 Ex", 4123: "ConnectX-6", 4125: "ConnectX-6 Dx", 4127: "ConnectX-6 Lx",
    4129: "ConnectX-7", 4131: "ConnectX-8", 4133: "ConnectX-9", 41682: "BlueField", 41686: "BlueField-2",
    41692: "BlueField-3", 41695: "BlueField-4",
}  # fmt: skip
VIRTUAL = {
    4100: "ConnectX-3 VF", 4114: "Connect-IB VF", 4116: "ConnectX-4 VF", 4118: "ConnectX-4 Lx VF", 4120: "ConnectX-5 VF",
    4122: "ConnectX-5 Ex VF", 4124: "ConnectX-6 VF",
}  # fmt: skip
#: The function that all newer families share; the firmware's major number tells the family.
SHARED_VIRTUAL = 4126
FIRMWARE = {
    12: "ConnectX-4", 14: "ConnectX-4 Lx", 16: "ConnectX-5", 20: "ConnectX-6", 22: "ConnectX-6 Dx", 24: "BlueField-2",
    26: "ConnectX-6 Lx", 28: "ConnectX-7", 32: "BlueField-3", 40: "ConnectX-8",
}  # fmt: skip
#: The fastest port of each family, Gb/s.
FASTEST = {
    "ConnectX-3": 56, "ConnectX-4": 100, "ConnectX-5": 100, "ConnectX-5 Ex": 100, "ConnectX-6": 200, "ConnectX-6 Dx": 200,
    "ConnectX-7": 400, "ConnectX-8": 800, "BlueField-2": 200, "BlueField-3": 400,
}  # fmt: skip
GENERATIONS = {10: "SDR", 20: "DDR", 40: "QDR", 56: "FDR", 100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR"}
SOFTWARE = ("siw", "rxe")

IBSTAT = re.compile(r"^\W{0,4}CA '([^'\s]{1,40})'\s*$")
IBSTATUS = re.compile(r"Infiniband device '([^'\s]{1,40})' port ([0-9]{1,3}) status")
DEVINFO = re.compile(r"^\W{0,4}hca_id:\s*(\S{1,40})\s*$")
NETDEV = re.compile(r"\b(\w[\w.-]{1,39}) port ([0-9]{1,3}) ==> (\S{1,40}) \((Up|Down)\)")
RDMA_LINK = re.compile(
    r"\blink (\w[\w.-]{1,39})/([0-9]{1,3}) (?:subnet_prefix \S+ )?.{0,120}?\bstate (\w{1,20}) physical_state "
    r"(\w{1,20})(?:.{0,40}? netdev (\S{1,40}))?"
)
GIDS = re.compile(
    r"^\s*(\w[\w.-]{1,39})\s+([0-9]{1,3})\s+([0-9]{1,4})\s+((?:[0-9a-f]{4}:){7}[0-9a-f]{4})\s+(?:([0-9]{1,3}(?:\.[0-9]{1,3}){3})\s+)?(v1|v2|V1|V2|IB)?\s*(\S{1,40})?\s*$"
)
KEYED = re.compile(r"^\s*([A-Za-z_][\w /]{1,24}?)\s*:\s*(\S.{0,80}?)\s*$")
RATE = re.compile(r"([0-9.]{1,6})(?:\s*(?:Gb/sec|Gb/s|G)?)?(?:\s*\(([0-9]{1,2}X)?\s?([A-Z]{2,4}[0-9]{0,3})?\))?")


@dataclass(frozen=True, kw_only=True)
class IbReading(Reading):
    """Ports by adapter name ("mlx5_0", or "mlx5_0/2" where an adapter shows several ports).

    A port: rate (Gbit/s; None while it is down or unknown), state, physical_state, link (the link layer), generation
    (InfiniBand only), hca, firmware, active_mtu, max_mtu, lid, transport, netdev: as far as the tool shows them.
    gids: rows of show_gids; roce_v2_ipv4_gid_index: per adapter, the index to give NCCL.
    """

    tool: str | None = None
    devices: dict = field(default_factory=dict)
    ports_active: int | None = None
    total_rate: LineRate | None = None
    gids: tuple | None = None
    roce_v2_ipv4_gid_index: dict | None = None
    truncated: bool = False


def recognise(text: str) -> float:
    """How sure it is that `text` is of one of the tools."""
    if "Infiniband device '" in text or ("hca_id:" in text and ("phys_port_cnt" in text or "transport:" in text)):
        return 0.92
    if "CA '" in text and (
        "CA type:" in text or "Number of ports:" in text or "Link layer" in text or "Physical state" in text
    ):
        return 0.92
    if NETDEV.search(text) or ("physical_state" in text and RDMA_LINK.search(text)):
        return 0.85
    if "GID" in text and "INDEX" in text and "VER" in text:
        return 0.85
    if "Operational Info" in text and "Supported Info" in text:
        return 0.8
    if "hca_id:" in text or re.search(r"^\W{0,4}CA '\w{2,20}'[ \t]*$", text, re.MULTILINE):
        return 0.6
    return 0.7 if any(GIDS.match(line) for line in text[:5000].split("\n")) else 0.0


def read(text: str) -> Report:
    """Read one paste. Raises EvidenceError where it names no adapter."""
    ports: dict[tuple[str, int], dict[str, Any]] = {}
    gids: list[dict[str, Any]] = []
    tool = _parse(text, ports, gids)
    if not ports and not gids:
        raise EvidenceError("The text mentions RDMA adapters, but names none.")
    counts: dict[str, int] = {}
    for name, _ in ports:
        counts[name] = counts.get(name, 0) + 1
    devices, cut = {}, False
    for (name, port), seen in ports.items():
        described = _describe(seen)
        if not seen.get("state"):
            cut = cut or tool in ("ibstat", "ibv_devinfo", "ibstatus")
            if tool in ("ibstat", "ibv_devinfo", "ibstatus"):
                continue
        devices[name if counts[name] == 1 else f"{name}/{port}"] = described
    active = [one for one in devices.values() if str(one.get("state", "")).lower().removeprefix("port_") in ("active", "up")]
    rates = [one["rate"] for one in active if one.get("rate") is not None]
    last = list(ports.values())[-1] if ports else {}
    if tool in ("ibstat", "ibstatus", "ibv_devinfo") and last.get("state") and "link_layer" not in last:
        cut = True
    reading = IbReading(
        tool=tool,
        devices=devices,
        ports_active=len(active) if devices else None,
        total_rate=quantity(sum(rate.m_as("Gbit/s") for rate in rates), "Gbit / s") if rates else None,
        gids=tuple(gids[:2000]) or None,
        roce_v2_ipv4_gid_index=_gid_index(gids) or None,
        truncated=cut,
    )
    return Report(kind="ib", reading=reading, problems=_problems(reading, cut), truncated=cut)


READER = Reader("ib", recognise, read)


def _parse(text: str, ports: dict[tuple[str, int], dict[str, Any]], gids: list[dict[str, Any]]) -> str | None:
    """Fill `ports` and `gids`; the name of the (first) tool."""
    tool = None
    adapter: dict[str, Any] = {}
    name = ""
    port: dict[str, Any] | None = None
    for line in lines(text):
        if len(line) < 6:
            continue
        if match := IBSTATUS.search(line):
            tool, name, adapter = tool or "ibstatus", match.group(1), {}
            port = ports.setdefault((name, int(match.group(2))), adapter)
        elif (match := IBSTAT.match(line)) or (match := DEVINFO.match(line)):
            tool = tool or ("ibstat" if "CA '" in line else "ibv_devinfo")
            name, adapter, port = match.group(1), {}, None
        elif match := NETDEV.search(line):
            tool = tool or "ibdev2netdev"
            seen = ports.setdefault((match.group(1), int(match.group(2))), {})
            seen["netdev"] = match.group(3)
            seen.setdefault("state", match.group(4))
        elif "physical_state" in line and (match := RDMA_LINK.search(line)):
            tool = tool or "rdma link"
            seen = ports.setdefault((match.group(1), int(match.group(2))), {})
            seen.update(state=match.group(3), physical_state=match.group(4))
            if match.group(5):
                seen["netdev"] = match.group(5)
        elif match := GIDS.match(line):
            tool = tool or "show_gids"
            gids.append(
                {"device": match.group(1), "port": int(match.group(2)), "index": int(match.group(3)), "gid": match.group(4),
                 "ipv4": match.group(5), "version": (match.group(6) or "").lower() or None, "netdev": match.group(7)}
            )  # fmt: skip
        elif match := re.match(r"\s*Port ([0-9]{1,3}):\s*$", line):
            port = ports.setdefault((name, int(match.group(1))), dict(adapter)) if name else None
        elif match := KEYED.match(line):
            key, value = match.group(1).strip().lower().replace(" ", "_"), match.group(2)
            if key == "port" and integer(value) is not None and name:
                port = ports.setdefault((name, int(value)), dict(adapter))
            elif tool is None and key in ("state", "speed", "physical_state", "width") and "Operational Info" in text:
                tool, name = "mlxlink", "port"
                port = ports.setdefault((name, 1), {})
                port[key] = value
            elif port is not None:
                port[key] = value
            elif name:
                adapter[key] = value
        if tool in ("ibstat", "ibv_devinfo") and name and port is None and adapter and (name, 1) not in ports:
            continue
    if tool in ("ibstat", "ibv_devinfo") and name and not any(key[0] == name for key in ports):
        ports[name, 1] = adapter  # cut before its first port
    return tool


def _describe(seen: dict[str, Any]) -> dict[str, Any]:
    """One port with the names of IbReading.devices."""
    state = seen.get("state", "")
    state = state.split(":", 1)[-1].strip() if ":" in state else re.sub(r"\s*\([0-9]+\)$", "", state).strip()
    physical = seen.get("physical_state") or seen.get("phys_state") or seen.get("physical state")
    down = state.lower().removeprefix("port_") not in ("active", "up", "armed", "initializing", "init", "")
    link = seen.get("link_layer") or seen.get("link")
    firmware = seen.get("firmware_version") or seen.get("fw_ver")
    found: dict[str, Any] = {"state": state or None}
    if physical:
        found["physical_state"] = physical.split(":", 1)[-1].strip()
    printed = seen.get("rate") or (seen.get("speed") if "speed" in seen else None)
    rate = RATE.match(printed) if printed else None
    speed = number(rate.group(1)) if rate else None
    if printed is not None:
        found["rate"] = quantity(None if down else speed, "Gbit / s")
    if link:
        found["link"] = link
    if link == "InfiniBand" and not down:
        generation = (rate.group(3) if rate and rate.group(3) else GENERATIONS.get(round(speed)) if speed else None) or None
        if generation:
            found["generation"] = generation
    adapter = _adapter(seen, firmware)
    if adapter:
        found["hca"] = adapter
    if firmware:
        found["firmware"] = firmware.split(" ")[0]
    for key in ("active_mtu", "max_mtu"):
        size = integer(seen.get(key, "").split(" ")[0])
        if size is not None:
            found[key] = size
    lid = seen.get("base_lid") or seen.get("port_lid")
    if lid and (value := _whole(lid)) is not None:
        found["lid"] = value
    transport = seen.get("transport")
    if transport:
        found["transport"] = re.sub(r"\s*\([0-9]+\)$", "", transport)
    if seen.get("netdev"):
        found["netdev"] = seen["netdev"]
    return found


def _whole(token: str) -> int | None:
    token = token.split(" ")[0]
    return int(token, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}", token) else integer(token)


def _adapter(seen: dict[str, Any], firmware: str | None) -> str | None:
    """The adapter's family from its PCI number, a shared virtual function's from its firmware."""
    number_ = seen.get("ca_type", "").removeprefix("MT").split(" ")[0] or seen.get("vendor_part_id", "").split(" ")[0]
    part = integer(number_)
    if part == SHARED_VIRTUAL:
        family = FIRMWARE.get(integer((firmware or "").split(".")[0]) or -1)
        return f"{family} VF" if family else "ConnectX VF"
    return ADAPTERS.get(part) or VIRTUAL.get(part)


def _gid_index(gids: list[dict[str, Any]]) -> dict[str, int]:
    """Per adapter the first index that is RoCE v2 with an IPv4 address."""
    found: dict[str, int] = {}
    for row in gids:
        if row["version"] == "v2" and row["ipv4"]:
            found.setdefault(row["device"], row["index"])
    return found


def _problems(reading: IbReading, cut: bool) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    devices = reading.devices
    if cut:
        problems.append(cut_problem("inside an adapter, which is left out", "某个网卡的信息中间（已略去该网卡）"))
    down = [
        name
        for name, one in devices.items()
        if str(one.get("state") or "").lower().removeprefix("port_") in ("down", "disabled", "polling")
    ]
    if down:
        problems.append(
            problem(
                "link_down",
                "error",
                f"{', '.join(down)} {'is' if len(down) == 1 else 'are'} down: a rate printed there is a "
                f"placeholder. Check cable, "
                "transceiver and switch port.",
                f"{', '.join(down)} 未连通：其显示的速率只是占位值。请检查线缆、光模块和交换机端口。",
            )
        )
    soft = [name for name, one in devices.items() if name.startswith(SOFTWARE) or one.get("transport") == "iWARP"]
    if soft:
        problems.append(
            problem(
                "software_rdma",
                "warning",
                f"{', '.join(soft)} {'is' if len(soft) == 1 else 'are'} software RDMA or iWARP, not a RoCE or "
                f"InfiniBand adapter: do "
                "not count it as RDMA capacity.",
                f"{', '.join(soft)} 是软件 RDMA 或 iWARP，不是 RoCE / InfiniBand 网卡，不能算作 RDMA 能力。",
            )
        )
    ethernet = [name for name, one in devices.items() if one.get("link") == "Ethernet" and name not in soft]
    if ethernet:
        problems.append(
            problem(
                "roce_not_infiniband",
                "info",
                f"{', '.join(ethernet[:8])}: the link layer is Ethernet, so this is RoCE, whatever generation "
                f"is printed; it needs a "
                "GID index (RoCE v2, IPv4) and has no LIDs.",
                f"{', '.join(ethernet[:8])}：链路层为以太网，即 RoCE（与显示的 EDR/HDR 字样无关）；需要 GID "
                f"index（RoCE v2、IPv4），没有 LID。",
            )
        )
    problems += _speed_problems(devices)
    small = [
        name for name, one in devices.items()
        if name not in soft and one.get("active_mtu", 9999) <= 1024 and one.get("link") == "Ethernet"
    ]  # fmt: skip
    if small:
        problems.append(
            problem(
                "mtu_1024",
                "warning",
                f"The active MTU of {', '.join(small)} is 1024: the Ethernet MTU is probably 1500; set 9000 for 4096.",
                f"{', '.join(small)} 的 active MTU 为 1024：以太网 MTU 多半是 1500，请设为 9000（RDMA MTU 4096）。",
            )
        )
    if reading.tool == "ibv_devinfo" and devices:
        problems.append(
            problem(
                "rate_unknown",
                "info",
                "ibv_devinfo without -v shows no rate: the speed of the link is unknown from this paste; run ibstat.",
                "ibv_devinfo（不带 -v）不显示速率：从本次粘贴无法得知链路速度，请运行 ibstat。",
            )
        )
    if reading.gids and not reading.roce_v2_ipv4_gid_index:
        problems.append(
            problem(
                "no_roce_v2_gid",
                "warning",
                "No GID of RoCE v2 with an IPv4 address is listed: give the interface an address before using RoCE.",
                "没有列出 RoCE v2 + IPv4 的 GID：使用 RoCE 前请先为网口配置地址。",
            )
        )
    return tuple(problems)


def _speed_problems(devices: dict[str, dict[str, Any]]) -> list[Problem]:
    problems = []
    slow, rates = [], {}
    for name, one in devices.items():
        rate = one["rate"].m_as("Gbit/s") if one.get("rate") is not None else None
        fastest = FASTEST.get(one.get("hca", ""))
        if rate is not None:
            rates[name] = rate
        if rate and fastest and rate < fastest:
            slow.append(f"{name} {rate:g} of {fastest}")
    if slow:
        problems.append(
            problem(
                "below_adapter",
                "info",
                f"Ports run below the fastest of their adapter family ({'; '.join(slow[:8])} Gb/s): a slower "
                f"model, cable or switch, "
                "or a link that negotiated down.",
                f"端口速率低于该系列网卡的最高速率（{'; '.join(slow[:8])} Gb/s）：可能是低速型号、线缆或交换机，"
                f"也可能是协商降速。",
            )
        )
    if len(set(rates.values())) > 1:
        problems.append(
            problem(
                "mixed_rates",
                "warning",
                "The ports do not all run at one rate ("
                + ", ".join(f"{name} {rate:g}" for name, rate in list(rates.items())[:10])
                + " Gb/s): leave storage and management ports out with NCCL_IB_HCA.",
                "各端口速率不一致（"
                + ", ".join(f"{name} {rate:g}" for name, rate in list(rates.items())[:10])
                + " Gb/s）：请用 NCCL_IB_HCA 排除存储和管理网口。",
            )
        )
    return problems
