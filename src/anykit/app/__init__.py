"""Puts the parts together: configuration, the workbench, what a person names as a source."""

from .config import AppConfig, ConfigError, config_file_schema, find_config, parse_config, read_config
from .opening import builtin_toolkits, source_openers
from .workbench import SourceUnavailable, SourceView, Workbench, default_sources

__all__ = [
    "AppConfig",
    "ConfigError",
    "SourceUnavailable",
    "SourceView",
    "Workbench",
    "builtin_toolkits",
    "config_file_schema",
    "default_sources",
    "find_config",
    "parse_config",
    "read_config",
    "source_openers",
]
