"""The tables of each stage, as HTML made from a plan."""

from advisor.ui.panels.tables import budget, cluster, memory, storage, workload
from advisor.ui.panels.tables.card import TableCard

CARDS: dict[str, tuple[TableCard, ...]] = {
    "workload": workload.CARDS,
    "memory": memory.CARDS,
    "cluster": cluster.CARDS,
    "storage": storage.CARDS,
    "budget": budget.CARDS,
}

__all__ = ["CARDS", "TableCard"]
