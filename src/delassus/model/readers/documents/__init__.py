"""Documents of model files: XML with the places of its elements, and what MuJoCo refuses, with places."""
