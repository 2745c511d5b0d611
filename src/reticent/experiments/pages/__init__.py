"""What the demonstrations' HTML pages share."""
