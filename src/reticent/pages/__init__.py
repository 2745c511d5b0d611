"""Pages of HTML, and the charts in them."""
