"""Text or Python -> Model."""
