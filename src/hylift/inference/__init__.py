"""From a graph with evidence to a posterior."""

from hylift.inference.exact import Exact
from hylift.inference.method import Method, Request, Task
from hylift.inference.run import check_tasks, infer

__all__ = ["Exact", "Method", "Request", "Task", "check_tasks", "infer"]
