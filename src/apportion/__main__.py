"""`python -m apportion`: the same program as `apportion`."""

from apportion.commands import main

if __name__ == "__main__":
    main()
