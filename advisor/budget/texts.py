"""Words of the budget in both languages: line names, drivers, phases, modes."""

from __future__ import annotations

LINES = {
    "final_run": ("Final run", "正式训练"),
    "experiments": ("Trial runs before it", "正式训练前的试验"),
    "failures": ("Failures and restarts", "故障与重启"),
    "interruptions": ("Work lost to spot interruptions", "竞价实例中断损失"),
    "idle": ("Machines billed while nothing trains", "空转计费时间"),
    "unused_term": ("Paid term that is not used", "已付费但未使用的时长"),
    "storage": ("Storage", "存储"),
    "requests": ("Object storage requests", "对象存储请求费"),
    "egress": ("Data egress", "流出流量费"),
    "cross_region": ("Transfer between regions", "跨地域流量费"),
    "preprocessing": ("CPU preprocessing", "CPU 预处理"),
    "leftovers": ("Disks, snapshots and addresses of stopped machines", "停机后仍计费的云盘、快照与公网 IP"),
    "support": ("Provider support plan", "厂商支持服务"),
    "operations": ("Operating people", "运维人力"),
}
ROLES = {
    "raw": ("raw data", "原始数据"),
    "shards": ("training data", "训练数据"),
    "hot_checkpoints": ("checkpoints in use", "热检查点"),
    "archived_checkpoints": ("archived checkpoints", "归档检查点"),
    "environments": ("environments", "环境与镜像"),
    "logs": ("logs", "日志"),
}
DRIVERS = {
    "time": ("training time", "训练时间"),
    "price": ("price of the machine", "机器单价"),
    "experiments": ("trial runs", "试验量"),
    "goodput": ("failures (goodput)", "故障（有效训练占比）"),
    "interruption": ("spot interruption rate", "竞价实例中断率"),
    "idle": ("idle hours", "空转时间"),
    "retention": ("how long data are kept", "数据保留时长"),
    "storage_price": ("storage price", "存储单价"),
    "get_price": ("request price", "请求单价"),
    "region_price": ("price between regions", "跨地域流量单价"),
    "egress_price": ("egress price", "流量单价"),
    "preprocessing": ("preprocessing speed", "预处理速度"),
    "stopped": ("how long stopped machines stay", "停机资源保留时长"),
    "operator_price": ("cost of people", "人力单价"),
}
PHASES = {
    "setup": ("set-up and trials", "准备与试验"),
    "run": ("final run", "正式训练"),
    "after": ("kept afterwards", "训练后保留"),
}
MODES = {
    "on_demand": ("on demand", "按量付费"),
    "spot": ("spot", "竞价实例/抢占式实例"),
    "reserved_1y": ("reserved for one year", "预留 1 年"),
    "reserved_3y": ("reserved for three years", "预留 3 年"),
    "own": ("own machines", "自有机器"),
}
LEASE = ("monthly lease", "按月租用")


def both(en: str, zh: str) -> dict[str, str]:
    """A text in both languages."""
    return {"en": en, "zh": zh}


def of(table: dict[str, tuple[str, str]], code: str) -> dict[str, str]:
    """The text of a code, or the code itself."""
    return both(*(table.get(code) or table.get(code.split(":")[0]) or (code, code)))
