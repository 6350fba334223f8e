"""The demo, `python -m kproto_pipeline.demo`: real flights published, the job, a chart."""
