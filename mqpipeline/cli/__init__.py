"""The command `mqpipeline`: one module for each subject, each with `add(app)`."""
