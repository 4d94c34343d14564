"""From a graph with evidence to a posterior."""

from hylift.infer.exact import Exact
from hylift.infer.method import Method, Request, Task
from hylift.infer.run import check_tasks, infer

__all__ = ["Exact", "Method", "Request", "Task", "check_tasks", "infer"]
