"""anykit: one toolbox for any agent."""
