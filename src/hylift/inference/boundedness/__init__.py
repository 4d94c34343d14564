"""Whether the Bethe free energy of a model is bounded below."""

from hylift.inference.boundedness.certificate import BetheCertificate, Densities
from hylift.inference.boundedness.certify import bethe_certificate
from hylift.inference.boundedness.violations.violation import Violation

__all__ = ["BetheCertificate", "Densities", "Violation", "bethe_certificate"]
