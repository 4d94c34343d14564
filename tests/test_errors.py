"""What hylift raises."""

import pickle

from hylift.errors import FormatError


def test_a_format_error_survives_the_way_to_another_process() -> None:
    error = FormatError("model.uai", "broken", line=3, column=4)

    again = pickle.loads(pickle.dumps(error))

    assert str(again) == "model.uai:3:4: broken"
    assert (again.line, again.column) == (3, 4)
