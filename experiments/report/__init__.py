"""What an experiment has to show: rows beside the paper's figures, speeds, answers, pictures."""

from experiments.report.outcome import Outcome
from experiments.report.printed import Printed
from experiments.report.row import Row, summary
from experiments.report.speed import Speed, Timing

__all__ = ["Outcome", "Printed", "Row", "Speed", "Timing", "summary"]
