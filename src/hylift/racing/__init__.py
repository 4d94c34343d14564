"""All methods on one graph, side by side."""

from hylift.racing.entrants import checked_name
from hylift.racing.finish import Finish, Skipped
from hylift.racing.result import Race
from hylift.racing.run import race
from hylift.racing.yardstick import Yardstick

__all__ = ["Finish", "Race", "Skipped", "Yardstick", "checked_name", "race"]
