"""What the reader sees and touches: widgets linked to the models' traits. No number is worked out here."""
