"""Cluster: how many cards of which kind, in which layout; why not fewer and why not another; what binds; the host of a node."""

from __future__ import annotations

from advisor.cluster.candidates import legal_layouts
from advisor.cluster.cards import usual_price, usual_prices, usual_scale_out
from advisor.cluster.choose import assess, choose
from advisor.cluster.records import Candidate, ClusterEstimate, SearchInputs
from advisor.cluster.search import SearchResult, search_cluster
from advisor.cluster.why import why_not_card, why_not_fewer

__all__ = [
    "Candidate",
    "ClusterEstimate",
    "SearchInputs",
    "SearchResult",
    "assess",
    "choose",
    "legal_layouts",
    "search_cluster",
    "usual_price",
    "usual_prices",
    "usual_scale_out",
    "why_not_card",
    "why_not_fewer",
]
