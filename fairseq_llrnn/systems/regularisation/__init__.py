"""Regularisation of recurrent language models (README.md): weight dropout, and penalties of states.

    plugin    --weight-drop, --activation-penalty, --change-penalty
"""
