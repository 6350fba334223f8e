"""The demo, `python -m kproto_pipeline.demo`: publishes flights, runs the job, draws a chart."""
