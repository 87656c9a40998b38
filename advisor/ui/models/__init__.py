"""What the screen knows, without a screen: traits that observe themselves and set a result or a problem."""

from advisor.ui.models.answer import Headline, differences, headline
from advisor.ui.models.comparison import Comparison
from advisor.ui.models.controls import CONTROLS, Control, controls_of
from advisor.ui.models.planning import PlanModel, Problem

__all__ = ["CONTROLS", "Comparison", "Control", "Headline", "PlanModel", "Problem", "controls_of", "differences", "headline"]
