"""What each command does, in a module that is imported when the command runs."""
