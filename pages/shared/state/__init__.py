"""State in links and messages, read without trust; what run directories say."""
