"""GetCallerIdentity in open mode, in which every caller is root of the account."""

import pytest
from botocore.exceptions import ClientError

from tests.aws_clients import aws_client


def test_every_caller_is_root_of_account_in_open_mode(service_url):
    sqs = aws_client("sqs", service_url)
    url = sqs.create_queue(QueueName="of-an-account")["QueueUrl"]

    caller_identity = aws_client("sts", service_url).get_caller_identity()

    account = url.split("/")[3]
    assert (caller_identity["Account"], caller_identity["UserId"]) == (account, account)
    assert caller_identity["Arn"] == f"arn:aws:iam::{account}:root"


def test_temporary_credentials_are_not_issued(service_url):
    sts = aws_client("sts", service_url)

    with pytest.raises(ClientError) as error:
        sts.assume_role(RoleArn="arn:aws:iam::123456789012:role/any", RoleSessionName="any")

    assert error.value.response["Error"]["Code"] == "InvalidAction"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
