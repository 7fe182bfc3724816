"""Many runs that answer one question: studies, protocols, searches; what comes back after a crash; the example."""
