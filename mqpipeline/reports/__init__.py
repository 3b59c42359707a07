"""What the tables say of windows of time: one module a report, each from DataFrames to a REPORT_* of the schemas."""
