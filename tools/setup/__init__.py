"""What a checkout needs around the product: Java, peers' virtual environment, versions found."""
