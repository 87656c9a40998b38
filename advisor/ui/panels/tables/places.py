"""Words in the catalog's names of offers, in the reader's language: names stay, what describes is translated."""

from __future__ import annotations

import re

from advisor.ui.text import N_, Texts

#: Descriptions that stand where a region or an instance has its name.
WORDS = (
    N_("local NVMe of the training machines"),
    N_("none in the catalog"),
    N_("typical (same price in all regions)"),
    N_("selected regions, via sales"),
    N_("8-card bare-metal server, monthly lease"),
    N_("per card container"),
    N_("container, 1 card"),
    N_("per card instance"),
    N_("GPU cluster"),
    N_("serverless per GPU"),
    N_("(spec page)"),
    N_("market median"),
    N_("market index"),
    N_("mainland China"),
    N_("per GPU"),
    N_("GPU VM, 1 card"),
    N_("GPU instance"),
    N_("typical"),
)
_ANY = re.compile("|".join(map(re.escape, WORDS)))


def place(name: str, texts: Texts) -> str:
    """A region or an instance as the catalog calls it, its describing words in the present language."""
    return _ANY.sub(lambda found: texts.t(found[0]), name)
