"""System checks for settings that are each right but wrong together."""
