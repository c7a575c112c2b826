"""For fairseq alone: it imports the modules in the folder `tasks` of its --user-dir. Our tasks are in plugin/tasks."""
