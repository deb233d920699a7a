from enum import StrEnum


class TranslateRequestSystem(StrEnum):
    JMS = "jms"
    PUBSUB = "pubsub"
    RABBITMQ = "rabbitmq"
    SERVICE_BUS = "service_bus"

    def __str__(self) -> str:
        return str(self.value)
