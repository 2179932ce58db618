"""The formats of agents: the only code that knows how an agent writes its sessions."""
