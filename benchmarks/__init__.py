"""Speed and scale, side by side with peers; `python -m benchmarks` runs all, or those named."""
