"""The built-in toolkits: `filesystem`, `database`, `web`."""
