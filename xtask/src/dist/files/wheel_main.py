from dodona_agent import main

main()
