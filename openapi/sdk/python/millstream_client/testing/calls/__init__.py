"""Operations of the in-memory service, which register themselves when they are imported."""

from millstream_client.testing.calls import definitions as definitions
from millstream_client.testing.calls import groups as groups
from millstream_client.testing.calls import jobs as jobs
from millstream_client.testing.calls import queues as queues
from millstream_client.testing.calls import requests as requests
from millstream_client.testing.calls import streams as streams
from millstream_client.testing.calls import topics as topics
