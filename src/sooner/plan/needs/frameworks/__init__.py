"""What uses devices: libraries outside the tree, the library under test, and what is given to them."""
