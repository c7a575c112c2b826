"""Models trained in the tiny worlds, once a session."""

from expert_models import expert_file as expert_file
from trained_models import evidence_models as evidence_models
from trained_models import trained as trained
from trained_models import trained_with_expert as trained_with_expert
