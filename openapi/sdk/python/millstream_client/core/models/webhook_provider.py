from enum import StrEnum


class WebhookProvider(StrEnum):
    GITHUB = "github"
    HMAC = "hmac"
    SLACK = "slack"
    STANDARD_WEBHOOKS = "standard_webhooks"
    STRIPE = "stripe"

    def __str__(self) -> str:
        return str(self.value)
