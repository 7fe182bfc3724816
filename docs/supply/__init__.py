"""What the project is made of besides its own code: locked packages, their licences, the bill of materials."""
