"""Numbers of the papers, pure: outcomes in, shares and speedups out. Part of the bridge."""
