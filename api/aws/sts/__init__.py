"""The STS door: one call, with which a program written for Amazon's services asks who it is there."""
