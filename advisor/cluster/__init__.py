"""Cluster: how many cards of which kind, in which layout; why not fewer and why not another; what binds; the host of a node."""

from __future__ import annotations

from advisor.cluster.candidates import illegal, legal_layouts
from advisor.cluster.cards import usual_price, usual_prices, usual_scale_out
from advisor.cluster.choose import assess, choose
from advisor.cluster.host import HostEstimate, HostInputs, size_host
from advisor.cluster.limits import CardNumbers, Limits, compare_cards, what_binds
from advisor.cluster.records import Candidate, ClusterEstimate, SearchInputs
from advisor.cluster.search import SearchResult, search_cluster
from advisor.cluster.why import why_not_card, why_not_fewer

__all__ = [
    "Candidate",
    "CardNumbers",
    "ClusterEstimate",
    "HostEstimate",
    "HostInputs",
    "Limits",
    "SearchInputs",
    "SearchResult",
    "assess",
    "choose",
    "compare_cards",
    "illegal",
    "legal_layouts",
    "search_cluster",
    "size_host",
    "usual_price",
    "usual_prices",
    "usual_scale_out",
    "what_binds",
    "why_not_card",
    "why_not_fewer",
]
