"""JSON Schema: from a Python signature, compiled and validated, with defaults filled in and secrets known."""

from .docstrings import Documentation, read_docstring
from .errors import SchemaError, SignatureError
from .generation import config_schema
from .json_values import MAX_DEPTH, is_json, json_faults
from .pointers import pointer
from .secrets import merge_masked, redact, secret_pointers, secret_texts
from .signature import FunctionSchema, Parameter, describe
from .validation import Validator, check_form, compile_schema

__all__ = [
    "MAX_DEPTH",
    "Documentation",
    "FunctionSchema",
    "Parameter",
    "SchemaError",
    "SignatureError",
    "Validator",
    "check_form",
    "compile_schema",
    "config_schema",
    "describe",
    "is_json",
    "json_faults",
    "merge_masked",
    "pointer",
    "read_docstring",
    "redact",
    "secret_pointers",
    "secret_texts",
]
