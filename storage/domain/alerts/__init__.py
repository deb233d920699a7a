"""Vocabulary of alerts: kinds, order by harm, mutes."""
