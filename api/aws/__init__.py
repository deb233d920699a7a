"""AWS-compatible endpoints. The only package that uses AWS terms."""
