"""What tenfold ships beside its code: price files and demo logs (links here in a checkout, folders in a wheel)."""
