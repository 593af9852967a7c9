"""What the scripts of analysis/ share: reading run folders, drawing, assembling pages."""
