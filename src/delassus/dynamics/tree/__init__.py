"""What the algorithms on a tree share: poses of links, passes over them, and what adds up on the way."""
