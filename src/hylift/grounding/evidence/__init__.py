"""What is observed: from files, tables and mappings to tables of the engine."""

from hylift.grounding.evidence.table import EvidenceTable

__all__ = ["EvidenceTable"]
